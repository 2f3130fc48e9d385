// Package port keeps TCP ports of 127.0.0.1 for programs that are started later, and again after they were ended.
//
// A port that is found free and left alone belongs to whatever asks next: a program that needs that very one would then
// fail at each start. It imports nothing of this repository.
package port
