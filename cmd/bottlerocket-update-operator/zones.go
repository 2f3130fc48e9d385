package main

// The policy's windows are in time zones, and the image has no time zone files.
import _ "time/tzdata"
