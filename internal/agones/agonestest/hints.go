package agonestest

import (
	"net/http"
	"slices"
)

// counterLocked answers a request about a counter.
func (s *Sidecar) counterLocked(method, name string, count, capacity, diff *number) (any, *failure) {
	c, ok := s.counters[name]
	if method == http.MethodGet {
		s.requests = append(s.requests, "getcounter")
	}
	switch {
	case !ok:
		return nil, errorf("not found. %s Counter not found", name)
	case method == http.MethodGet:
		return counterAnswer(name, c), nil
	case method != http.MethodPatch:
		return nil, notFound
	}
	inside := func() *failure {
		if c.Count < 0 || c.Count > c.Capacity {
			return errorf("out of range. Count must be within range [0,Capacity]. Found Count: %d, Capacity: %d", c.Count, c.Capacity)
		}
		return nil
	}
	if capacity != nil {
		s.requests = append(s.requests, "setcapacitycounter")
		if c.Capacity = int64(*capacity); c.Capacity < 0 {
			return nil, errorf("out of range. Capacity must be greater than or equal to 0. Found Capacity: %d", c.Capacity)
		}
	}
	if count != nil {
		s.requests = append(s.requests, "setcountcounter")
		c.Count = int64(*count)
		if f := inside(); f != nil {
			return nil, f
		}
	}
	if diff != nil && *diff != 0 {
		s.requests = append(s.requests, "updatecounter")
		c.Count += int64(*diff)
		if f := inside(); f != nil {
			return nil, f
		}
	}
	s.counters[name] = c
	return counterAnswer(name, c), nil
}

func counterAnswer(name string, c Counter) any {
	return map[string]any{"name": name, "count": text(c.Count), "capacity": text(c.Capacity)}
}

// listLocked answers a request about a list. do is the method, for a POST followed by the verb.
func (s *Sidecar) listLocked(do, name, value string, capacity *number, values *[]string) (any, *failure) {
	request := map[string]string{"GET": "getlist", "PATCH": "updatelist", "POSTaddValue": "addlistvalue", "POSTremoveValue": "removelistvalue"}[do]
	if request == "" {
		return nil, notFound
	}
	s.requests = append(s.requests, request)
	l, ok := s.lists[name]
	if !ok {
		return nil, errorf("not found. %s List not found", name)
	}
	at := slices.Index(l.Values, value)
	switch {
	case request == "updatelist":
		if capacity != nil {
			l.Capacity = int64(*capacity)
		}
		if values != nil {
			l.Values = slices.Clone(*values)
		}
		if l.Capacity < int64(len(l.Values)) { // As Agones does, without an error.
			l.Values = l.Values[:l.Capacity]
		}
	case request == "addlistvalue" && l.Capacity <= int64(len(l.Values)):
		return nil, errorf("out of range. No available capacity. Current Capacity: %d, List Size: %d", l.Capacity, len(l.Values))
	case request == "addlistvalue" && at >= 0:
		return nil, errorf("already exists. Value: %s already in List: %s", value, name)
	case request == "addlistvalue":
		l.Values = append(slices.Clone(l.Values), value)
	case request == "removelistvalue" && at < 0:
		return nil, errorf("not found. Value: %s not found in List: %s", value, name)
	case request == "removelistvalue":
		l.Values = slices.Delete(slices.Clone(l.Values), at, at+1)
	}
	s.lists[name] = l
	return map[string]any{"name": name, "values": slices.Clone(l.Values), "capacity": text(l.Capacity)}, nil
}
