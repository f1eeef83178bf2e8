seq 2 | tail -5
