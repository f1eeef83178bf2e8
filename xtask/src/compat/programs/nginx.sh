mkdir -p n; echo 'hello from nginx' > n/index.html
cat > n/conf <<END
user root; daemon off; worker_processes 2; pid $PWD/n/pid; error_log $PWD/n/error;
events { worker_connections 64; }
http { access_log off; gzip on;
client_body_temp_path $PWD/n/b; proxy_temp_path $PWD/n/p; fastcgi_temp_path $PWD/n/f;
uwsgi_temp_path $PWD/n/u; scgi_temp_path $PWD/n/s;
server { listen unix:$PWD/sock; root $PWD/n; location /tea { return 418 'teapot'; } } }
END
/usr/sbin/nginx -p n -c $PWD/n/conf 2> n/stderr & server=$!
n=0; until curl -s --unix-socket sock -o /dev/null http://x/ || [ $n -gt 400 ]; do sleep 0.05; n=$((n + 1)); done
ask() { curl -s --unix-socket sock "$@"; }
ask http://x/index.html; ask -w ' %{http_code}\n' http://x/tea
ask -o /dev/null -w '%{http_code}\n' http://x/none
for n in 1 2 3 4 5; do ask http://x/index.html; done | wc -l
kill -QUIT $server; wait $server; echo $?; rm -rf n sock
