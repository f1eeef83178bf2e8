echo hi > a.txt
p="*.txt"
echo "$p"
