10 A$ = "interpreter"
20 FOR I = 1 TO LEN(A$) STEP 4
30 PRINT MID$(A$, I, 4); "/";
40 NEXT
50 PRINT LEFT$(A$, 5) + "-" + RIGHT$(A$, 3)
60 PRINT VAL("12") + 1; " "; STR$(3 / 4); " "; ASC("A"); CHR$(66)
