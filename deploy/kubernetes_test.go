package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/knadh/koanf/parsers/yaml"
)

const schemas = "kubernetes/schemas"

// manifest is one object of a manifest.
type manifest struct {
	file   string
	object map[string]any
}

// at returns a part of an object, or nil.
func (m manifest) at(path ...any) any {
	var v any = m.object
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (m manifest) kind() string { return fmt.Sprint(m.at("kind")) }

// manifests returns the objects of all manifests.
func manifests(t *testing.T) (all []manifest) {
	t.Helper()
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "nats-values.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			all = append(all, manifest{file, parseYAML(t, file, part)})
		}
	}
	return all
}

// parseYAML returns an object as JSON has it.
func parseYAML(t *testing.T, name, text string) (object map[string]any) {
	t.Helper()
	parsed, err := yaml.Parser().Unmarshal([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	asJSON, err := json.Marshal(parsed)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := json.Unmarshal(asJSON, &object); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// schemaOf returns the schema of a kind.
func schemaOf(t *testing.T, kind string) *jsonschema.Resolved {
	t.Helper()
	load := func(u *url.URL) (*jsonschema.Schema, error) {
		text, err := os.ReadFile(filepath.Join(schemas, filepath.Base(u.Path)))
		if err != nil {
			return nil, err
		}
		s := new(jsonschema.Schema)
		return s, json.Unmarshal(text, s)
	}
	s, err := load(&url.URL{Path: strings.ToLower(kind) + ".json"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{BaseURI: "file:///schemas/" + strings.ToLower(kind) + ".json", Loader: load})
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return resolved
}

func TestManifestsFitTheirSchemas(t *testing.T) {
	kinds := map[string]int{}
	for _, m := range manifests(t) {
		kinds[m.kind()]++
		if err := schemaOf(t, m.kind()).Validate(m.object); err != nil {
			t.Errorf("%s: %s %v: %v", m.file, m.kind(), m.at("metadata", "name"), err)
		}
	}
	for _, kind := range []string{"Fleet", "FleetAutoscaler", "Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service"} {
		if kinds[kind] == 0 {
			t.Errorf("no manifest has a %s", kind)
		}
	}
}

// A misspelt field, a wrong type and a missing field are found in the depths of each kind.
func TestSchemasRefuseMistakes(t *testing.T) {
	edits := map[string][2]string{
		"an unknown field of a container":  {`"readOnlyRootFilesystem"`, `"readonlyRootFilesystem"`},
		"a number as an environment value": {`"value":"5m"`, `"value":5`},
		"a port without its number":        {`"port":8081,"protocol":"TCP","targetPort"`, `"protocol":"TCP","targetPort"`},
		"an unknown policy of ports":       {`"Dynamic"`, `"dynamic"`},
		"an unknown field of a fleet":      {`"periodSeconds":5`, `"period":5`},
		"an unknown counter field":         {`"bufferSize"`, `"buffer"`},
		"a budget with a misspelt field":   {`"maxUnavailable":1,"selector"`, `"maxUnavailble":1,"selector"`},
		"an unknown direction":             {`"podSelector"`, `"podSelektor"`},
		"an unknown kind of a version":     {`"apps/v1"`, `"apps/v2"`},
	}
	for name, edit := range edits {
		applied := 0
		for _, m := range manifests(t) {
			text, err := json.Marshal(m.object)
			if err != nil {
				t.Fatal(err)
			}
			edited := strings.Replace(string(text), edit[0], edit[1], 1)
			if edited == string(text) {
				continue
			}
			applied++
			var object map[string]any
			if err := json.Unmarshal([]byte(edited), &object); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if schemaOf(t, m.kind()).Validate(object) == nil {
				t.Errorf("%s: %s: %s is accepted", name, m.file, m.kind())
			}
		}
		if applied == 0 {
			t.Errorf("%s: no manifest contains %s", name, edit[0])
		}
	}
}

// pods returns the pod templates, by file.
func pods(t *testing.T) map[string]manifest {
	t.Helper()
	all := map[string]manifest{}
	for _, m := range manifests(t) {
		switch m.kind() {
		case "Fleet":
			all[m.file] = manifest{m.file, m.at("spec", "template", "spec", "template").(map[string]any)}
		case "Deployment":
			all[m.file] = manifest{m.file, m.at("spec", "template").(map[string]any)}
		}
	}
	if len(all) != 3 {
		t.Fatalf("%d pod templates", len(all))
	}
	return all
}

// Each setting of a pod is a flag of the server, and its volumes and ports exist.
func TestPodsUseExistingSettings(t *testing.T) {
	help, err := os.ReadFile("../app/testdata/help.txt")
	if err != nil {
		t.Fatal(err)
	}
	for file, pod := range pods(t) {
		directs := strings.HasSuffix(file, "director.yaml")
		env, _ := pod.at("spec", "containers", 0, "env").([]any)
		values := map[string]string{}
		for _, e := range env {
			e := e.(map[string]any)
			name := e["name"].(string)
			values[name], _ = e["value"].(string)
			flag, ours := strings.CutPrefix(name, "NETLOOP_")
			if flag = strings.ReplaceAll(strings.ToLower(flag), "_", "-"); !ours {
				continue
			}
			if !regexp.MustCompile(`(?m)^\s+--` + flag + `\s`).Match(help) {
				t.Errorf("%s: %s is not a setting of the server", file, name)
			}
		}
		if values["NETLOOP_AGONES"] == "true" != strings.HasSuffix(file, "fleet.yaml") {
			t.Errorf("%s: NETLOOP_AGONES is %q", file, values["NETLOOP_AGONES"])
		}
		mounts, _ := pod.at("spec", "containers", 0, "volumeMounts").([]any)
		volumes, _ := pod.at("spec", "volumes").([]any)
		var has, wants []string
		for _, v := range volumes {
			has = append(has, v.(map[string]any)["name"].(string))
		}
		for _, v := range mounts {
			wants = append(wants, v.(map[string]any)["name"].(string))
			path := v.(map[string]any)["mountPath"].(string)
			used := false
			for _, value := range values {
				used = used || value == path || strings.HasPrefix(value, path+"/")
			}
			if !used {
				t.Errorf("%s: no setting uses %s", file, path)
			}
		}
		if slices.Sort(has); !slices.Equal(has, slices.Sorted(slices.Values(wants))) {
			t.Errorf("%s: volumes %v, mounts %v", file, has, wants)
		}
		if port := fmt.Sprint(pod.at("spec", "containers", 0, "ports")); !strings.Contains(port, "8081") || !strings.HasSuffix(values["NETLOOP_ADMIN"], ":8081") {
			t.Errorf("%s: the admin listener has the port %s, the container %s", file, values["NETLOOP_ADMIN"], port)
		}
		// The drain, a minute to save, and the work and connections that end.
		if grace, _ := pod.at("spec", "terminationGracePeriodSeconds").(float64); !directs && (values["NETLOOP_DRAIN"] != "5m" || grace < 300+60+6+5+5) {
			t.Errorf("%s: a drain of %s in a grace period of %v s", file, values["NETLOOP_DRAIN"], grace)
		}
	}
}

// Selectors of services, budgets and policies match the labels of the pods, and the autoscaler
// knows its fleet and counter.
func TestSelectorsMatchThePods(t *testing.T) {
	labels := func(name string) string {
		component := "server"
		if strings.HasSuffix(name, "director") {
			component = "director"
		}
		return "map[app.kubernetes.io/component:" + component + " app.kubernetes.io/name:arena]"
	}
	for file, pod := range pods(t) {
		if got := fmt.Sprint(pod.at("metadata", "labels")); got != labels(strings.TrimSuffix(file, ".yaml")) {
			t.Errorf("%s: labels %v", file, got)
		}
	}
	for _, m := range manifests(t) {
		name := fmt.Sprint(m.at("metadata", "name"))
		selector := map[string][]any{
			"Service": {"spec", "selector"}, "PodDisruptionBudget": {"spec", "selector", "matchLabels"},
			"NetworkPolicy": {"spec", "podSelector", "matchLabels"}, "Deployment": {"spec", "selector", "matchLabels"},
		}[m.kind()]
		switch {
		case m.kind() == "FleetAutoscaler":
			if m.at("spec", "fleetName") != "arena" || m.at("spec", "policy", "counter", "key") != "players" {
				t.Errorf("%s: of another fleet or counter", m.file)
			}
		case strings.HasPrefix(name, "arena") && selector != nil:
			if got := fmt.Sprint(m.at(selector...)); got != labels(name) {
				t.Errorf("%s: %s %s selects %v, not %v", m.file, m.kind(), name, got, labels(name))
			}
		}
	}
}

// A part that was never run on a cluster says so, in words.
func TestManifestsSayThatTheyWereNotRun(t *testing.T) {
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ReplaceAll(string(text), "\n#", ""), "unverified") {
			t.Errorf("%s does not say that it is unverified", file)
		}
	}
}
