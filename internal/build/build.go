// Package build reports the version of netloop that a program contains.
package build

import "runtime/debug"

// Version is the version of the netloop in this program.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return version(info)
}

// version returns the version of netloop in the build information of a program. netloop is its main
// module or a dependency.
func version(build *debug.BuildInfo) string {
	const module = "github.com/netloop/netloop"
	if build == nil {
		return "of unknown version"
	}
	version := ""
	if build.Main.Path == module {
		version = build.Main.Version
	}
	for _, d := range build.Deps {
		if d.Path == module {
			version = d.Version
		}
	}
	if version == "" || version == "(devel)" {
		return "development version"
	}
	return version
}
