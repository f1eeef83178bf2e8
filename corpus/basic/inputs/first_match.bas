10 REM first multiple of 7 in each decade
20 D = 0
30 FOR I = D TO D + 9
40 IF I MOD 7 = 0 THEN GOTO 70
50 NEXT I
60 GOTO 80
70 PRINT D; ": "; I
80 D = D + 10
90 IF D < 400 THEN GOTO 30
100 PRINT "done"
