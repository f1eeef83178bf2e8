const fs = require('fs'), zlib = require('zlib'), crypto = require('crypto');
const sleep = ms => new Promise(done => setTimeout(done, ms));
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
console.log(fib(27));
console.log(JSON.parse(JSON.stringify({ a: [1, 2, { b: 'x\u00fc' }], d: new Date(0) })));
console.log(crypto.createHash('sha256').update('abc').digest('hex'));
console.log(zlib.gunzipSync(zlib.gzipSync('x'.repeat(10000))).length);
const many = new Map();
for (let i = 0; i < 200000; i++) many.set('k' + i % 5000, { i });
console.log(many.size, new Function('a', 'b', 'return a * b')(6, 7));
const soon = new Promise(done => setImmediate(() => { console.log('soon'); done(); }));
process.nextTick(() => console.log('tick'));
Promise.resolve().then(() => console.log('micro'));
(async () => {
  await soon;
  for (let i = 0; i < 3; i++) { await sleep(5); console.log('step', i); }
  console.log((await fs.promises.readFile(__filename)).length);
  try { null.x; } catch (error) { console.log(error.message); }
  setTimeout(() => { throw new Error('nobody catches this'); }, 5);
})();
