//! Threads, channels, mutexes, condition variables and scoped borrows of Rust's std.
use std::sync::{Arc, Condvar, Mutex, RwLock, mpsc};
use std::thread;

thread_local!(static OWN: std::cell::Cell<u64> = const { std::cell::Cell::new(7) });

fn main() {
    let (sender, receiver) = mpsc::sync_channel::<u64>(3);
    let producers: Vec<_> = (0..4u64)
        .map(|p| {
            let sender = sender.clone();
            thread::spawn(move || {
                for i in 0..50 {
                    OWN.set(OWN.get() + i);
                    sender.send(p * 1000 + i).unwrap();
                }
                OWN.get()
            })
        })
        .collect();
    drop(sender);
    println!("sum {}", receiver.iter().sum::<u64>());
    for producer in producers {
        println!("own {}", producer.join().unwrap());
    }
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let waiter = {
        let pair = pair.clone();
        thread::spawn(move || {
            let mut n = pair.0.lock().unwrap();
            while *n < 3 { n = pair.1.wait(n).unwrap(); }
            *n
        })
    };
    for _ in 0..3 { *pair.0.lock().unwrap() += 1; pair.1.notify_one(); }
    println!("waited for {}", waiter.join().unwrap());
    let shared = RwLock::new(vec![0u32; 8]);
    thread::scope(|scope| {
        for i in 0..8usize { let shared = &shared; scope.spawn(move || shared.write().unwrap()[i] = (i * i) as u32); }
    });
    println!("{:?}\nok", shared.read().unwrap());
}
