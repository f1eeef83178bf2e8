grep -n 404
grep -vc GET
