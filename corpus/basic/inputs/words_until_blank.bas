10 DIM C(26)
20 FOR W = 1 TO 40
30 READ S$
40 IF S$ = "*" THEN GOTO 120
50 FOR I = 1 TO LEN(S$)
60 IF MID$(S$, I, 1) = "-" THEN GOTO 90
70 C(ASC(MID$(S$, I, 1)) - 96) = C(ASC(MID$(S$, I, 1)) - 96) + 1
80 NEXT I
90 REM next word
100 NEXT W
110 DATA "ab-c","a-b","cc-","d","e-e","a","b-","c-c","dd-d","ef","*"
120 FOR I = 1 TO 6
130 PRINT CHR$(96 + I); " "; C(I)
140 NEXT I
