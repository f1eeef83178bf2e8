const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) {
  let s = 0; for (let i = 0; i < 2e6; i++) s = (s * 31 + i + workerData) % 1000003;
  parentPort.postMessage(s);
} else {
  const jobs = [1, 2, 3].map(n => new Promise((ok, bad) => {
    const w = new Worker(__filename, { workerData: n });
    w.on('message', ok); w.on('error', bad);
  }));
  Promise.all(jobs).then(all => console.log(all.join(' ')));
}
