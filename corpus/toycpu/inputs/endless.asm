start: jump start
