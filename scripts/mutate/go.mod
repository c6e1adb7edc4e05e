module github.com/netloop/netloop/scripts/mutate

go 1.26.0
