echo b > f
echo a >> f
echo b >> f
sort -u f
sort -r f
