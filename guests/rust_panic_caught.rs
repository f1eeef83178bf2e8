//! A panic unwinds through frames with destructors and is caught.
use std::panic;

struct Guard(&'static str);
impl Drop for Guard {
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}

fn deep(n: u32) -> u32 {
    let _guard = (n == 3).then(|| Guard("three"));
    if n == 0 { panic!("bottom") } else { deep(n - 1) + 1 }
}

fn main() {
    panic::set_hook(Box::new(|info| println!("hook: {}", info.payload().downcast_ref::<&str>().unwrap_or(&"?"))));
    let caught = panic::catch_unwind(|| deep(10)).is_err();
    println!("caught {caught}");
    let in_thread = std::thread::spawn(|| { let _guard = Guard("thread"); panic!("in thread") }).join().is_err();
    println!("joined with panic {in_thread}");
    println!("ok");
}
