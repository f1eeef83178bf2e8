start: set r1, table
 load r2, [r1 + 4]
 out r2
 halt
table: .word start, table + 4
