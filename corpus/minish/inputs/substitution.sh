echo $(echo inner | tr a-z X) $(seq 3)
