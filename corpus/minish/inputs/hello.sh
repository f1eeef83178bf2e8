echo hello world
echo 'single  quotes' "double" plain
