echo hi > a.txt
p="*.txt"
echo "pattern $p"
