seq 9 | head -3
seq 2 | head
