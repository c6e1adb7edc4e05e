package loadtest

// Execute is Main without the process.
var Execute = execute
