//! The company that the support agent works for: a few tables in memory, where a real one has databases and services.
//!
//! A brain gets such a value as its *services*: typed, shared by all its steps and tools, and never stored.

use positronic_core::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// Acme's back office.
#[derive(Debug, Default)]
pub struct Acme {
    customers: Vec<Customer>,
    orders: Vec<Order>,
    docs: Vec<&'static str>,
    books: Mutex<Books>,
}

/// What the agent's tools change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Books {
    /// Messages that were sent: to which thread, and what.
    pub sent: Vec<(String, String)>,
    /// Refunds by idempotency key, so that a repeated request pays nothing twice.
    pub refunds: Vec<(String, Receipt)>,
    /// Tickets that were handed to a person: whose, and why.
    pub escalated: Vec<(String, String)>,
    /// Customers whose ticket was closed.
    pub closed: Vec<String>,
}

/// Somebody who buys from Acme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// The customer's number.
    pub id: String,
    /// What the customer is called.
    pub name: String,
    /// The kind of account.
    pub tier: String,
    /// The Slack thread that is shared with the customer.
    pub thread: String,
    /// The customer's address.
    pub email: String,
}

/// Something that a customer bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Order {
    /// The order's number.
    pub id: String,
    /// What was bought.
    pub item: String,
    /// The price in euros.
    pub price: u32,
    /// How many days ago it arrived; `None` while it is on its way.
    pub arrived: Option<u32>,
}

/// Money to be paid back; the arguments of the agent's `refund` tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refund {
    /// The order's number
    pub order: String,
    /// Euros to pay back
    pub amount: u32,
}

/// Money that was paid back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The receipt's number.
    pub number: String,
    /// What was paid back.
    pub refund: Refund,
}

impl Acme {
    /// Makes a company with one customer, two orders and a few pages of help.
    #[must_use]
    pub fn example() -> Self {
        Self {
            customers: vec![Customer {
                id: "C-7".into(),
                name: "Mira".into(),
                tier: "gold".into(),
                thread: "thread-7".into(),
                email: "mira@example.com".into(),
            }],
            orders: vec![
                Order { id: "A-1001".into(), item: "espresso machine".into(), price: 249, arrived: Some(12) },
                Order { id: "A-1002".into(), item: "coffee grinder".into(), price: 60, arrived: None },
            ],
            docs: vec![
                "Refunds: within 30 days the whole price, after that half of it.",
                "Leaks: fasten the lid of the tank; a tank that still leaks is broken.",
                "Delivery: an order arrives within five days.",
            ],
            books: Mutex::default(),
        }
    }

    /// Finds a customer.
    ///
    /// # Errors
    ///
    /// When there is none with this number.
    pub fn customer(&self, id: &str) -> Result<Customer> {
        let found = self.customers.iter().find(|customer| customer.id == id);
        found.cloned().ok_or_else(|| Error::new(format!("Acme has no customer `{id}`")))
    }

    /// Finds an order.
    ///
    /// # Errors
    ///
    /// When there is none with this number.
    pub fn order(&self, id: &str) -> Result<Order> {
        let found = self.orders.iter().find(|order| order.id == id);
        found.cloned().ok_or_else(|| Error::new(format!("Acme has no order `{id}`")))
    }

    /// Finds the pages of help that have one of the words.
    #[must_use]
    pub fn docs(&self, query: &str) -> Vec<&'static str> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let has = |page: &&str| words.iter().any(|word| page.to_lowercase().contains(word));
        self.docs.iter().copied().filter(has).collect()
    }

    /// Sends a message to a thread.
    pub async fn send(&self, thread: &str, text: &str) {
        self.books.lock().await.sent.push((thread.to_owned(), text.to_owned()));
    }

    /// Pays money back. The same key pays once, however often it is asked.
    ///
    /// # Errors
    ///
    /// When there is no such order, or when it was not that dear.
    pub async fn refund(&self, refund: Refund, key: &str) -> Result<Receipt> {
        let order = self.order(&refund.order)?;
        if refund.amount > order.price {
            return Err(Error::new(format!("the {} cost only {} euros", order.item, order.price)));
        }
        let mut books = self.books.lock().await;
        if let Some((_, receipt)) = books.refunds.iter().find(|(known, _)| known == key) {
            return Ok(receipt.clone());
        }
        let receipt = Receipt { number: format!("R-{}", books.refunds.len() + 1), refund };
        books.refunds.push((key.to_owned(), receipt.clone()));
        Ok(receipt)
    }

    /// Hands a ticket to a person.
    pub async fn escalate(&self, customer: &str, reason: &str) {
        self.books.lock().await.escalated.push((customer.to_owned(), reason.to_owned()));
    }

    /// Closes a customer's ticket.
    pub async fn close(&self, customer: &str) {
        self.books.lock().await.closed.push(customer.to_owned());
    }

    /// Returns what the tools have changed.
    pub async fn books(&self) -> Books {
        self.books.lock().await.clone()
    }
}
