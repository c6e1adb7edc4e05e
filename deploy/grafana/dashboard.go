package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The grid of a dashboard has 24 columns.
const (
	statWidth   = 4
	statHeight  = 4
	graphWidth  = 8
	graphHeight = 8
)

// source is the data source of all panels and variables: the one that the variable selects.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// expand replaces the placeholders of an expression: {*} selects the servers, [*] is Grafana's
// interval for rates.
var expand = strings.NewReplacer("{*", `{job=~"$job",instance=~"$instance"`, "[*]", "[$__rate_interval]")

// generate returns the dashboard as JSON, with descriptions from the page of metrics.
func generate(metrics string) ([]byte, error) {
	all, err := readMeanings(metrics)
	if err != nil {
		return nil, err
	}
	b := dashboard.NewDashboardBuilder("netloop").
		Uid("netloop").
		Description("A netloop server: ticks, systems, messages, replication, inputs, transport, rooms and the Go runtime.").
		Tags([]string{"netloop"}).
		Time("now-30m", "now").
		Refresh("10s").
		Timezone("browser").
		Editable().
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(variable("job", "Job", "label_values(netloop_ticks_total, job)")).
		WithVariable(variable("instance", "Instance", `label_values(netloop_ticks_total{job=~"$job"}, instance)`))
	id := uint32(0)
	for _, r := range rows {
		id++
		b.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for i := range r.panels {
			p := &r.panels[i]
			text, err := all.describe(p)
			if err != nil {
				return nil, err
			}
			id++
			b.WithPanel(p.build(id, text))
		}
	}
	d, err := b.Build()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(d)
	return out.Bytes(), err
}

// variable selects values of a label. All of them are selected at first.
func variable(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).
		Datasource(source).
		Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).
		Current(dashboard.VariableOption{
			Selected: new(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// build returns the panel for Grafana.
func (p *panel) build(id uint32, text string) cog.Builder[dashboard.Panel] {
	if p.steps != nil {
		return p.buildStat(id, text)
	}
	g := timeseries.NewPanelBuilder().Id(id).Title(p.title).Description(text).Unit(p.unit).
		Datasource(source).Span(graphWidth).Height(graphHeight).
		ShowPoints(common.VisibilityModeNever).LineWidth(1).FillOpacity(10).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).Placement(common.LegendPlacementBottom).DisplayMode(common.LegendDisplayModeList)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if !p.signed {
		g.Min(0)
	}
	if p.stacked {
		g.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	for i := range p.lines {
		g.WithTarget(p.lines[i].build(i))
	}
	return g
}

func (p *panel) buildStat(id uint32, text string) cog.Builder[dashboard.Panel] {
	s := stat.NewPanelBuilder().Id(id).Title(p.title).Description(text).Unit(p.unit).
		Datasource(source).Span(statWidth).Height(statHeight).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		ColorMode(common.BigValueColorModeValue).
		GraphMode(common.BigValueGraphModeArea).
		Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(p.steps))
	for i := range p.lines {
		s.WithTarget(p.lines[i].build(i))
	}
	return s
}

func (l *line) build(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().RefId(string(rune('A' + i))).
		Datasource(source).
		Expr(expand.Replace(l.expr)).
		LegendFormat(l.legend).
		Range()
}
