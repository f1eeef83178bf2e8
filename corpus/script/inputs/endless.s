while 1 { }
