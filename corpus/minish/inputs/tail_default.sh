seq 25 > f
tail f | head -2
