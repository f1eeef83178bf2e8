//! exchange: matches buy and sell orders of several securities.
//!
//! usage: exchange < ORDERS
//!
//!     buy|sell ID SECURITY QUANTITY [PRICE] [ioc|fok]   without a price: at any price
//!     cancel ID
//!     change ID QUANTITY        a smaller quantity keeps the place, a larger one loses it
//!     show SECURITY             the book: prices, quantities, number of orders
//!     trades SECURITY           volume, last price, range
//!     halt SECURITY / resume SECURITY
//!     auction SECURITY          matches all that crosses, at one price
//!
//! Better prices first, among equals the earlier order. A trade is at the price of the order that
//! waited. `ioc` takes what is there and forgets the rest, `fok` takes all or nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::BufRead;

type Price = i64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Buy,
    Sell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Validity {
    UntilCancelled,
    ImmediateOrCancel,
    FillOrKill,
}

#[derive(Debug, Clone)]
struct Order {
    id: String,
    side: Side,
    quantity: u64,
    /// None: at any price.
    price: Option<Price>,
    validity: Validity,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Trade {
    buyer: String,
    seller: String,
    quantity: u64,
    price: Price,
}

/// Orders at one price, the oldest first.
#[derive(Debug, Default)]
struct Level {
    orders: VecDeque<Order>,
    total: u64,
}

impl Level {
    fn push(&mut self, order: Order) {
        self.total += order.quantity;
        self.orders.push_back(order);
    }

    fn take_out(&mut self, id: &str) -> Option<Order> {
        let index = self.orders.iter().position(|order| order.id == id)?;
        let order = self.orders.remove(index)?;
        self.total -= order.quantity;
        Some(order)
    }
}

#[derive(Debug, Default)]
struct Statistics {
    volume: u64,
    turnover: i64,
    last: Option<Price>,
    low: Option<Price>,
    high: Option<Price>,
}

impl Statistics {
    fn add(&mut self, trade: &Trade) {
        self.volume += trade.quantity;
        self.turnover += trade.price * trade.quantity as i64;
        self.last = Some(trade.price);
        self.low = Some(self.low.map_or(trade.price, |low| low.min(trade.price)));
        self.high = Some(self.high.map_or(trade.price, |high| high.max(trade.price)));
    }
}

#[derive(Debug, Default)]
struct Book {
    buys: BTreeMap<Price, Level>,
    sells: BTreeMap<Price, Level>,
    statistics: Statistics,
    halted: bool,
}

impl Book {
    fn side(&mut self, side: Side) -> &mut BTreeMap<Price, Level> {
        match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        }
    }

    /// The best price that an order of `side` could trade at.
    fn best_against(&self, side: Side) -> Option<Price> {
        match side {
            Side::Buy => self.sells.keys().next().copied(),
            Side::Sell => self.buys.keys().next_back().copied(),
        }
    }

    fn crosses(order: &Order, price: Price) -> bool {
        match (order.side, order.price) {
            (_, None) => true,
            (Side::Buy, Some(limit)) => price <= limit,
            (Side::Sell, Some(limit)) => price >= limit,
        }
    }

    /// How much could be traded at once.
    fn available(&self, order: &Order) -> u64 {
        let levels = match order.side {
            Side::Buy => &self.sells,
            Side::Sell => &self.buys,
        };
        levels
            .iter()
            .filter(|(price, _)| Book::crosses(order, **price))
            .map(|(_, level)| level.total)
            .sum()
    }

    /// Matches an incoming order; what is left of it may be put into the book.
    fn enter(&mut self, mut order: Order) -> Vec<Trade> {
        let mut trades = Vec::new();
        if order.validity == Validity::FillOrKill && self.available(&order) < order.quantity {
            return trades;
        }
        while order.quantity > 0 {
            let Some(price) = self.best_against(order.side) else { break };
            if !Book::crosses(&order, price) {
                break;
            }
            trades.extend(self.match_level(&mut order, price));
        }
        for trade in &trades {
            self.statistics.add(trade);
        }
        if order.quantity > 0 && order.validity == Validity::UntilCancelled {
            if let Some(price) = order.price {
                self.side(order.side).entry(price).or_default().push(order);
            }
        }
        trades
    }

    fn match_level(&mut self, order: &mut Order, price: Price) -> Vec<Trade> {
        let mut trades = Vec::new();
        let other = match order.side {
            Side::Buy => &mut self.sells,
            Side::Sell => &mut self.buys,
        };
        let Some(level) = other.get_mut(&price) else { return trades };
        while order.quantity > 0 {
            let Some(waiting) = level.orders.front_mut() else { break };
            let quantity = order.quantity.min(waiting.quantity);
            order.quantity -= quantity;
            waiting.quantity -= quantity;
            trades.push(trade_between(order, waiting, quantity, price));
            if waiting.quantity == 0 {
                level.orders.pop_front();
            }
        }
        level.total = level.orders.iter().map(|waiting| waiting.quantity).sum();
        if level.orders.is_empty() {
            other.remove(&price);
        }
        trades
    }

    fn cancel(&mut self, side: Side, price: Price, id: &str) -> Option<Order> {
        let levels = self.side(side);
        let level = levels.get_mut(&price)?;
        let order = level.take_out(id)?;
        if level.orders.is_empty() {
            levels.remove(&price);
        }
        Some(order)
    }

    fn reduce(&mut self, side: Side, price: Price, id: &str, quantity: u64) -> bool {
        let Some(level) = self.side(side).get_mut(&price) else { return false };
        let Some(order) = level.orders.iter_mut().find(|order| order.id == id) else {
            return false;
        };
        order.quantity = quantity;
        true
    }

    /// The price at which most can be traded; among equals the lowest.
    fn auction_price(&self) -> Option<Price> {
        let mut best: Option<(u64, Price)> = None;
        for price in self.buys.keys().chain(self.sells.keys()) {
            let demand: u64 = self.buys.range(price..).map(|(_, level)| level.total).sum();
            let supply: u64 = self.sells.range(..=price).map(|(_, level)| level.total).sum();
            let volume = demand.min(supply);
            let better = match best {
                None => volume > 0,
                Some((most, at)) => volume > most || (volume == most && *price < at),
            };
            if better {
                best = Some((volume, *price));
            }
        }
        best.map(|(_, price)| price)
    }

    /// Trades all that crosses at one price.
    fn auction(&mut self) -> Option<(Price, Vec<Trade>)> {
        let price = self.auction_price()?;
        let mut trades = Vec::new();
        loop {
            let (Some(buy), Some(sell)) =
                (self.buys.keys().next_back().copied(), self.sells.keys().next().copied())
            else {
                break;
            };
            if buy < price || sell > price {
                break;
            }
            let Some(mut order) =
                self.buys.get_mut(&buy).and_then(|level| level.orders.pop_front())
            else {
                break;
            };
            let before = order.quantity;
            for mut trade in self.match_level(&mut order, sell) {
                trade.price = price;
                self.statistics.add(&trade);
                trades.push(trade);
            }
            self.put_back(buy, before, order);
        }
        Some((price, trades))
    }

    /// Puts what is left of an order back to its place at the front.
    fn put_back(&mut self, price: Price, before: u64, order: Order) {
        let Some(level) = self.buys.get_mut(&price) else { return };
        level.total -= before - order.quantity;
        if order.quantity > 0 {
            level.orders.push_front(order);
        } else if level.orders.is_empty() {
            self.buys.remove(&price);
        }
    }
}

fn trade_between(order: &Order, waiting: &Order, quantity: u64, price: Price) -> Trade {
    let (buyer, seller) = match order.side {
        Side::Buy => (order.id.clone(), waiting.id.clone()),
        Side::Sell => (waiting.id.clone(), order.id.clone()),
    };
    Trade { buyer, seller, quantity, price }
}

/// Where an order is.
#[derive(Debug, Clone)]
struct Place {
    security: String,
    side: Side,
    price: Price,
}

#[derive(Default)]
struct Exchange {
    books: BTreeMap<String, Book>,
    places: HashMap<String, Place>,
}

fn price_text(price: Price) -> String {
    format!("{}.{:02}", price / 100, price % 100)
}

fn parse_price(text: &str) -> Option<Price> {
    let (units, cents) = text.split_once('.').unwrap_or((text, "0"));
    let scale = if cents.len() == 1 { 10 } else { 1 };
    if cents.is_empty() || cents.len() > 2 {
        return None;
    }
    Some(units.parse::<Price>().ok()? * 100 + cents.parse::<Price>().ok()? * scale)
}

impl Exchange {
    fn obey(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [side @ ("buy" | "sell"), id, security, quantity, ref rest @ ..] => {
                let side = if side == "buy" { Side::Buy } else { Side::Sell };
                self.order(side, id, security, quantity, rest)
            }
            ["cancel", id] => self.cancel(id),
            ["change", id, quantity] => self.change(id, quantity),
            ["show", security] => self.show(security),
            ["trades", security] => self.trades(security),
            [word @ ("halt" | "resume"), security] => {
                self.books.entry(security.to_string()).or_default().halted = word == "halt";
                Ok(())
            }
            ["auction", security] => self.auction(security),
            _ => Err("cannot understand this".to_string()),
        }
    }

    fn order(
        &mut self,
        side: Side,
        id: &str,
        security: &str,
        quantity: &str,
        rest: &[&str],
    ) -> Result<(), String> {
        let quantity: u64 = quantity.parse().map_err(|_| format!("bad quantity {quantity}"))?;
        if quantity == 0 {
            return Err("bad quantity 0".to_string());
        }
        if self.places.contains_key(id) {
            return Err(format!("{id} exists"));
        }
        let mut order = Order {
            id: id.to_string(),
            side,
            quantity,
            price: None,
            validity: Validity::UntilCancelled,
        };
        for word in rest {
            match *word {
                "ioc" => order.validity = Validity::ImmediateOrCancel,
                "fok" => order.validity = Validity::FillOrKill,
                price => {
                    order.price =
                        Some(parse_price(price).ok_or_else(|| format!("bad price {price}"))?);
                }
            }
        }
        let book = self.books.entry(security.to_string()).or_default();
        let (price, validity) = (order.price, order.validity);
        let trades = if book.halted {
            let Some(price) = price else { return Err(format!("{security} is halted")) };
            book.side(side).entry(price).or_default().push(order);
            Vec::new()
        } else {
            book.enter(order)
        };
        self.report(&trades);
        let traded: u64 = trades.iter().map(|trade| trade.quantity).sum();
        if let (Some(price), true) = (price, traded < quantity) {
            if validity == Validity::UntilCancelled {
                let place = Place { security: security.to_string(), side, price };
                self.places.insert(id.to_string(), place);
            } else {
                println!("{id}: {} not filled", quantity - traded);
            }
        }
        Ok(())
    }

    /// Prints trades and forgets the places of orders that are done.
    fn report(&mut self, trades: &[Trade]) {
        for trade in trades {
            println!(
                "{} buys {} from {} at {}",
                trade.buyer,
                trade.quantity,
                trade.seller,
                price_text(trade.price)
            );
        }
        for trade in trades {
            for id in [&trade.buyer, &trade.seller] {
                let Some(place) = self.places.get(id) else { continue };
                let waiting = self.books.get(&place.security).is_some_and(|book| {
                    let levels =
                        if place.side == Side::Buy { &book.buys } else { &book.sells };
                    levels
                        .get(&place.price)
                        .is_some_and(|level| level.orders.iter().any(|order| order.id == *id))
                });
                if !waiting {
                    self.places.remove(id);
                }
            }
        }
    }

    fn place(&self, id: &str) -> Result<Place, String> {
        self.places.get(id).cloned().ok_or_else(|| format!("no order {id}"))
    }

    fn cancel(&mut self, id: &str) -> Result<(), String> {
        let place = self.place(id)?;
        let book = self.books.entry(place.security).or_default();
        let order = book.cancel(place.side, place.price, id);
        self.places.remove(id);
        println!("{id} cancelled, {} left", order.map_or(0, |order| order.quantity));
        Ok(())
    }

    fn change(&mut self, id: &str, quantity: &str) -> Result<(), String> {
        let place = self.place(id)?;
        let quantity: u64 = quantity.parse().map_err(|_| format!("bad quantity {quantity}"))?;
        if quantity == 0 {
            return self.cancel(id);
        }
        let book = self.books.entry(place.security).or_default();
        let current = book
            .side(place.side)
            .get(&place.price)
            .and_then(|level| level.orders.iter().find(|order| order.id == id))
            .map_or(0, |order| order.quantity);
        if quantity <= current {
            book.reduce(place.side, place.price, id, quantity);
        } else if let Some(mut order) = book.cancel(place.side, place.price, id) {
            order.quantity = quantity;
            book.side(place.side).entry(place.price).or_default().push(order);
        }
        Ok(())
    }

    fn show(&self, security: &str) -> Result<(), String> {
        let book = self.books.get(security).ok_or_else(|| format!("no {security}"))?;
        println!("{security}{}", if book.halted { " (halted)" } else { "" });
        for (price, level) in book.sells.iter().rev() {
            println!("  {:>10} {:>8} x{} sell", price_text(*price), level.total, level.orders.len());
        }
        for (price, level) in book.buys.iter().rev() {
            println!("  {:>10} {:>8} x{} buy", price_text(*price), level.total, level.orders.len());
        }
        Ok(())
    }

    fn trades(&self, security: &str) -> Result<(), String> {
        let book = self.books.get(security).ok_or_else(|| format!("no {security}"))?;
        let statistics = &book.statistics;
        match (statistics.last, statistics.low, statistics.high) {
            (Some(last), Some(low), Some(high)) => println!(
                "{security}: volume {}, last {}, low {}, high {}, mean {}",
                statistics.volume,
                price_text(last),
                price_text(low),
                price_text(high),
                price_text(statistics.turnover / statistics.volume as i64)
            ),
            _ => println!("{security}: no trades"),
        }
        Ok(())
    }

    fn auction(&mut self, security: &str) -> Result<(), String> {
        let book =
            self.books.get_mut(security).ok_or_else(|| format!("no {security}"))?;
        match book.auction() {
            Some((price, trades)) => {
                println!("auction at {}", price_text(price));
                self.report(&trades);
            }
            None => println!("nothing to match"),
        }
        Ok(())
    }
}

fn main() {
    let mut exchange = Exchange::default();
    let mut errors = 0;
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.unwrap_or_default();
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(error) = exchange.obey(&line) {
            println!("line {}: {error}", index + 1);
            errors += 1;
        }
    }
    std::process::exit(i32::from(errors > 0));
}
