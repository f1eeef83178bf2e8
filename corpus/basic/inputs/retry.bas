10 T = 0
20 FOR K = 1 TO 5
30 T = T + 1
40 IF T > 70 THEN GOTO 70
50 IF T MOD 2 = 1 THEN GOTO 20
60 NEXT K
70 PRINT T; " tries, stopped at "; K
