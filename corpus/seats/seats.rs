//! seats: many clients book seats in a theatre at once.
//!
//! usage: seats [rows=N] [columns=N] [clients=N] [requests=N] [group=N]
//!
//! Each client asks again and again for a group of neighbouring seats in a row, and gives some
//! back. At the end every seat must be held by exactly the client that booked it last, and the
//! count of free seats must agree.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seat {
    Free,
    Taken(usize),
}

struct Row {
    seats: Mutex<Vec<Seat>>,
}

struct Theatre {
    rows: Vec<Row>,
    free: AtomicUsize,
    collisions: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
struct Booking {
    row: usize,
    first: usize,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Options {
    rows: usize,
    columns: usize,
    clients: usize,
    requests: usize,
    group: usize,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// Where `count` neighbouring free seats begin.
fn free_run(seats: &[Seat], count: usize) -> Option<usize> {
    let mut run = 0;
    for (index, seat) in seats.iter().enumerate() {
        run = if *seat == Seat::Free { run + 1 } else { 0 };
        if run == count {
            return Some(index + 1 - count);
        }
    }
    None
}

impl Theatre {
    fn new(options: Options) -> Theatre {
        let row = || Row { seats: Mutex::new(vec![Seat::Free; options.columns]) };
        Theatre {
            rows: (0..options.rows).map(|_| row()).collect(),
            free: AtomicUsize::new(options.rows * options.columns),
            collisions: AtomicUsize::new(0),
        }
    }

    fn book(&self, client: usize, row: usize, count: usize) -> Option<Booking> {
        let first = free_run(&self.rows[row].seats.lock().unwrap(), count)?;
        let mut seats = self.rows[row].seats.lock().unwrap();
        for seat in &mut seats[first..first + count] {
            if *seat != Seat::Free {
                self.collisions.fetch_add(1, Ordering::Relaxed);
            }
            *seat = Seat::Taken(client);
        }
        self.free.fetch_sub(count, Ordering::Relaxed);
        Some(Booking { row, first, count })
    }

    fn give_back(&self, client: usize, booking: Booking) {
        let mut seats = self.rows[booking.row].seats.lock().unwrap();
        for seat in &mut seats[booking.first..booking.first + booking.count] {
            if *seat != Seat::Taken(client) {
                self.collisions.fetch_add(1, Ordering::Relaxed);
            }
            *seat = Seat::Free;
        }
        self.free.fetch_add(booking.count, Ordering::Relaxed);
    }

    fn count_free(&self) -> usize {
        let free = |row: &Row| {
            row.seats.lock().unwrap().iter().filter(|seat| **seat == Seat::Free).count()
        };
        self.rows.iter().map(free).sum()
    }
}

/// One client: books, remembers, gives back every third time or when nothing is free.
fn visit(theatre: &Theatre, client: usize, options: Options) -> Vec<Booking> {
    let mut random = Random(0x9e3779b97f4a7c15 ^ (client as u64 + 1) * 7919);
    let mut held: Vec<Booking> = Vec::new();
    for request in 0..options.requests {
        let row = random.below(options.rows);
        let count = 1 + random.below(options.group);
        match theatre.book(client, row, count) {
            Some(booking) if request % 3 != 2 => held.push(booking),
            Some(booking) => theatre.give_back(client, booking),
            None => {
                if !held.is_empty() {
                    let oldest = held.remove(0);
                    theatre.give_back(client, oldest);
                }
            }
        }
    }
    held
}

fn audit(theatre: &Theatre, held: &[Vec<Booking>]) -> bool {
    let mut wrong = 0;
    let mut booked = 0;
    for (client, bookings) in held.iter().enumerate() {
        for booking in bookings {
            let seats = theatre.rows[booking.row].seats.lock().unwrap();
            booked += booking.count;
            wrong += seats[booking.first..booking.first + booking.count]
                .iter()
                .filter(|seat| **seat != Seat::Taken(client))
                .count();
        }
    }
    let total: usize = theatre.rows.iter().map(|row| row.seats.lock().unwrap().len()).sum();
    let free = theatre.count_free();
    let agree = theatre.free.load(Ordering::Relaxed) == free && free + booked == total;
    let collisions = theatre.collisions.load(Ordering::Relaxed);
    println!("{} rows, {total} seats, {} clients", theatre.rows.len(), held.len());
    println!("bookings {}", if wrong == 0 { "right" } else { "WRONG" });
    println!("counts {}", if agree { "agree" } else { "DIFFER" });
    println!("collisions {}", if collisions == 0 { "none" } else { "SOME" });
    wrong == 0 && agree && collisions == 0
}

fn options() -> Result<Options, String> {
    let mut options = Options { rows: 4, columns: 12, clients: 4, requests: 2000, group: 4 };
    for argument in std::env::args().skip(1) {
        let (name, value) = argument.split_once('=').ok_or_else(|| format!("what is {argument}?"))?;
        let value: usize = value.parse().map_err(|_| format!("not a number: {value}"))?;
        match name {
            "rows" => options.rows = value,
            "columns" => options.columns = value,
            "clients" => options.clients = value,
            "requests" => options.requests = value,
            "group" => options.group = value,
            _ => return Err(format!("what is {name}?")),
        }
    }
    if options.rows == 0 || options.group == 0 || options.clients > 64 {
        return Err("too few or too many".to_string());
    }
    Ok(options)
}

fn main() {
    let options = options().unwrap_or_else(|error| {
        eprintln!("seats: {error}");
        std::process::exit(2);
    });
    let theatre = Arc::new(Theatre::new(options));
    let clients: Vec<_> = (0..options.clients)
        .map(|client| {
            let theatre = Arc::clone(&theatre);
            thread::spawn(move || visit(&theatre, client, options))
        })
        .collect();
    let held: Vec<Vec<Booking>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    std::process::exit(i32::from(!audit(&theatre, &held)));
}
