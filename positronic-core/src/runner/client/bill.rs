//! Usage and cost of runs and conversations.

use crate::prices::PriceTable;
use crate::projection::{Bill, Costs};
use crate::record::{RunId, Seq};
use crate::runner::Client;
use crate::store::StoreError;

impl Client {
    /// Returns the usage and cost of a run, by a price table.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn costs(&self, run: &RunId, prices: &PriceTable) -> Result<Costs, StoreError> {
        let events = self.events(run, Seq(0)).await?;
        Ok(Costs::of(events.iter().map(|event| &**event), prices))
    }

    /// Returns the usage and cost of each run of a conversation, in order of their start, by a price table.
    ///
    /// ```
    /// # use positronic_core::runner::Client;
    /// # use positronic_core::prices::PriceTable;
    /// # async fn example(client: Client) -> Result<(), positronic_core::store::StoreError> {
    /// let bill = client.bill("thread-7", &PriceTable::bundled()).await?;
    /// let total = bill.total();
    /// println!("{} tokens, {} {}", total.usage.total(), total.known, bill.currency);
    /// if total.unpriced > 0 {
    ///     println!("and what {} cost", bill.unpriced().join(", "));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn bill(&self, conversation: &str, prices: &PriceTable) -> Result<Bill, StoreError> {
        let mut rows = self.conversation(conversation).await?;
        rows.sort_by(|one, other| (one.started, &one.run).cmp(&(other.started, &other.run)));
        let mut bill = Bill::new(prices);
        for row in rows {
            let events = self.events(&row.run, Seq(0)).await?;
            bill.add(row.run, events.iter().map(|event| &**event), prices);
        }
        Ok(bill)
    }
}
