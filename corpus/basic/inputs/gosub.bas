10 FOR I = 1 TO 3 : GOSUB 100 : NEXT I
20 END
100 PRINT "square of "; I; " is "; I * I
110 RETURN
