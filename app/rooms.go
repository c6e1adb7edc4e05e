package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/netloop/netloop/internal/directory"
)

// roomsFlags are the flags of the commands about rooms.
type roomsFlags struct {
	adminFlags
	kind, sort string
	limit      int
	json       bool
	drain      time.Duration
	text       string
}

// roomsCommand makes the commands that list and close the rooms of a running server.
func (p *program) roomsCommand() *cobra.Command {
	var f roomsFlags
	parent := parentCommand("rooms", "List and close the rooms of a running server", "list", "close", "drain")
	list := &cobra.Command{
		Use: "list", Short: "Print the rooms of a running server", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listRooms(cmd, &f) },
	}
	list.Flags().StringVar(&f.kind, "kind", "", "rooms of this kind alone")
	list.Flags().StringVar(&f.sort, "sort", "opened", "by name or kind, or in descending order by clients, seats, rate, tick, late, overruns or age")
	list.Flags().IntVar(&f.limit, "limit", directory.DefaultRows, "maximum number of rows; 0 is all")
	list.Flags().BoolVar(&f.json, "json", false, "print JSON")
	closing := &cobra.Command{
		Use: "close NAME", Short: "Close a room at once, and send its clients the reason", Args: oneRoom,
		RunE: func(cmd *cobra.Command, args []string) error { return p.closeRoom(cmd.Context(), args[0], 0, &f) },
	}
	drain := &cobra.Command{
		Use: "drain NAME", Short: "Admit no more clients to a room, and close it when it is empty or the time is over", Args: oneRoom,
		RunE: func(cmd *cobra.Command, args []string) error { return p.closeRoom(cmd.Context(), args[0], f.drain, &f) },
	}
	drain.Flags().DurationVar(&f.drain, "for", 30*time.Second, "how long its clients may continue")
	for _, cmd := range []*cobra.Command{closing, drain} {
		cmd.Long = cmd.Short + ". It needs a token with the role write. The default\nroom ends with the server alone."
		cmd.Flags().StringVar(&f.text, "text", "", "reason that its clients get")
	}
	for _, cmd := range []*cobra.Command{list, closing, drain} {
		f.add(cmd.Flags())
		parent.AddCommand(cmd)
	}
	return parent
}

// oneRoom checks that the arguments are the name of one room.
func oneRoom(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes the name of one room: %s --admin URL", cmd.CommandPath(), cmd.UseLine())
	}
	return nil
}

// listRooms prints one line for each room. It requests as many pages as needed.
func (p *program) listRooms(cmd *cobra.Command, f *roomsFlags) error {
	switch {
	case f.address == "":
		return errNoAdmin
	case f.limit < 0:
		return fmt.Errorf("--limit: %d cannot be used: use 0 for all, or more", f.limit)
	}
	query := url.Values{"sort": {f.sort}}
	if cmd.Flags().Changed("kind") {
		query.Set("kind", f.kind)
	}
	all := directory.Page{Rooms: []directory.Row{}}
	for more := true; more; {
		rows := directory.MaxRows
		if f.limit > 0 {
			rows = min(rows, f.limit-len(all.Rooms))
		}
		query.Set("limit", strconv.Itoa(rows))
		query.Set("offset", strconv.Itoa(all.Next))
		page, err := f.page(cmd.Context(), query)
		if err != nil {
			return err
		}
		all.Rooms, all.Total, all.Next = append(all.Rooms, page.Rooms...), page.Total, page.Next
		more = page.Next > 0 && len(page.Rooms) > 0 && (f.limit == 0 || len(all.Rooms) < f.limit)
	}
	var err error
	if f.json {
		err = p.printJSON(all)
	} else {
		_, err = io.WriteString(p.stdout, roomTable(&all))
	}
	return failed(err)
}

// page requests a part of the list.
func (f *roomsFlags) page(ctx context.Context, query url.Values) (page directory.Page, err error) {
	body, from, err := f.ask(ctx, http.MethodGet, "rooms", query)
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Rooms == nil {
		return page, &failure{fmt.Errorf("--admin: %s does not list the rooms of a netloop server of this version", from)}
	}
	return page, nil
}

// roomTable returns the list as a table. A room's name is quoted, with unprintable characters
// escaped: clients may have chosen the name.
func roomTable(all *directory.Page) string {
	var w strings.Builder
	t := tabwriter.NewWriter(&w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tkind\tstate\tclients\tseats\trate\ttick p50\tp99\tlate p99\toverruns\tage")
	for i := range all.Rooms {
		r := &all.Rooms[i]
		fmt.Fprintf(t, "%q\t%s\t%s\t%d\t%d/%d\t%.4g Hz\t%v\t%v\t%v\t%d\t%v\n", r.Name, plain(r.Kind), r.State, r.Clients, r.Seats, r.Max, r.Rate,
			micros(r.TickP50), micros(r.TickP99), micros(r.LateP99), r.Overruns, r.Age.Round(time.Second))
	}
	_ = t.Flush() // A strings.Builder never fails.
	if more := all.Total - len(all.Rooms); more > 0 {
		fmt.Fprintf(&w, "and %d more (--limit 0 prints all)\n", more)
	}
	return w.String()
}

// plain returns a room's kind for the table: in ASCII with escapes, or - if it is empty.
func plain(kind string) string {
	if kind == "" {
		return "-"
	}
	return strings.Trim(strconv.QuoteToASCII(kind), `"`)
}

func micros(d time.Duration) time.Duration { return d.Round(time.Microsecond) }

// closeRoom asks the server to close a room, after a drain time for its clients.
func (p *program) closeRoom(ctx context.Context, name string, drain time.Duration, f *roomsFlags) error {
	if f.address == "" {
		return errNoAdmin
	}
	query := url.Values{"room": {name}, "drain": {drain.String()}}
	if f.text != "" {
		query.Set("text", f.text)
	}
	body, _, err := f.ask(ctx, http.MethodPost, "rooms/close", query)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(body)
	return failed(err)
}
