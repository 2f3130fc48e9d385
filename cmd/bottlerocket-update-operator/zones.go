package main

// The policy's windows are in time zones, and the image has no files of them.
import _ "time/tzdata"
