python3 -u -m http.server 0 --bind 127.0.0.1 > log 2>&1 & server=$!
n=0; until grep -q 'port' log 2>/dev/null || [ $n -gt 400 ]; do sleep 0.05; n=$((n + 1)); done
port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' log)
for n in 1 2 3; do curl -s http://127.0.0.1:$port/words.txt | cksum; done
curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$port/nonesuch
kill $server; wait $server 2>/dev/null; echo $?; rm -f log
