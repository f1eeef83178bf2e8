local s = 0
for i = 1, 3000000 do s = (s * 31 + i) % 1000003 end
print(s)
local ffi = require('ffi')
ffi.cdef[[int getpid(void); int snprintf(char*, size_t, const char*, ...);
void qsort(void*, size_t, size_t, int(*)(const int*, const int*));]]
local b = ffi.new('char[32]'); ffi.C.snprintf(b, 32, '%d-%s', ffi.new('int', 7), 'x'); print(ffi.string(b))
local a = ffi.new('int[200]'); for i = 0, 199 do a[i] = i * 7919 % 211 end
ffi.C.qsort(a, 200, 4, function(x, y) return x[0] - y[0] end)
print(a[0], a[100], a[199])
local t = {} for i = 1, 100000 do t[#t + 1] = tostring(i):reverse() end
print(#table.concat(t), (jit.status()))
local co = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield(i) end end)
local c = 0 for i = 1, 1000 do c = c + co() end print(c)
print(pcall(function() local x = nil; return x.y end))
