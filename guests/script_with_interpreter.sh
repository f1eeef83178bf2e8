#!{out}/prints_arguments.O2 one argument of the line
This text is never interpreted.
