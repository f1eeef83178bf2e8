redis-server --port 0 --unixsocket sock --save '' --logfile log & server=$!
n=0; until [ -S sock ] || [ $n -gt 400 ]; do sleep 0.05; n=$((n + 1)); done
ask() { redis-cli -s sock "$@"; }
ask set a 1; ask incr a; ask lpush list x y z; ask lrange list 0 -1
ask eval 'return redis.call("get", KEYS[1])' 1 a
redis-benchmark -s sock -q -n 500 -c 5 -t set,get | tr '\r' '\n' | grep -c 'requests per second'
ask shutdown nosave
wait $server; echo $?; rm -f log
