seq 3 > n
for i in "$(cat n)"; do echo "<$i>"; done
