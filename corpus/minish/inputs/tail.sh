seq 9 | tail -3
