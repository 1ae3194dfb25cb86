//! The company of the support agent: a few tables in memory in place of databases and services.
//!
//! A brain gets such a value as its *services*: typed, shared by all its steps and tools, and not stored.

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

/// Changes by the agent's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Books {
    /// Sent messages: thread and text.
    pub sent: Vec<(String, String)>,
    /// Refunds by idempotency key, so that a repeated request pays only once.
    pub refunds: Vec<(String, Receipt)>,
    /// Tickets escalated to a person: customer and reason.
    pub escalated: Vec<(String, String)>,
    /// Customers with closed tickets.
    pub closed: Vec<String>,
}

/// A customer of Acme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// The customer's number.
    pub id: String,
    /// The customer's name.
    pub name: String,
    /// The kind of account.
    pub tier: String,
    /// The Slack thread shared with the customer.
    pub thread: String,
    /// The customer's address.
    pub email: String,
}

/// A purchase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Order {
    /// The order's number.
    pub id: String,
    /// The product.
    pub item: String,
    /// The price in euros.
    pub price: u32,
    /// Days since its arrival; `None` while it is on its way.
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

/// A paid refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The receipt's number.
    pub number: String,
    /// The refunded amount.
    pub refund: Refund,
}

impl Acme {
    /// Creates a company with one customer, two orders and a few help pages.
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
    /// If there is no customer with this number.
    pub fn customer(&self, id: &str) -> Result<Customer> {
        let found = self.customers.iter().find(|customer| customer.id == id);
        found.cloned().ok_or_else(|| Error::new(format!("Acme has no customer `{id}`")))
    }

    /// Finds an order.
    ///
    /// # Errors
    ///
    /// If there is no order with this number.
    pub fn order(&self, id: &str) -> Result<Order> {
        let found = self.orders.iter().find(|order| order.id == id);
        found.cloned().ok_or_else(|| Error::new(format!("Acme has no order `{id}`")))
    }

    /// Finds the help pages that contain one of the words.
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

    /// Refunds money. The same key pays only once.
    ///
    /// # Errors
    ///
    /// If the order does not exist, or its price was lower.
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

    /// Escalates a ticket to a person.
    pub async fn escalate(&self, customer: &str, reason: &str) {
        self.books.lock().await.escalated.push((customer.to_owned(), reason.to_owned()));
    }

    /// Closes a customer's ticket.
    pub async fn close(&self, customer: &str) {
        self.books.lock().await.closed.push(customer.to_owned());
    }

    /// Returns the changes by the tools.
    pub async fn books(&self) -> Books {
        self.books.lock().await.clone()
    }
}
