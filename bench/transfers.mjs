/** Enough that those of the calls in flight meet nobody; prime, so that a walk in strides comes to every one. */
export const ACCOUNTS = 9_973;

/** What each account begins with; far more than it pays in any run, for a refused transfer would be a shorter one. */
export const OPENING_CENTS = 100_000_000;

export const AMOUNT_CENTS = 10_000;

/** Who pays whom in a call. Only calls thousands apart share an account, and the payer's is as often the greater. */
export function partiesOf(call) {
  return { debtor: accountAt(2 * call), creditor: accountAt(2 * call + 1) };
}

/** Both accounts in the order in which everybody locks them, so that no two transfers wait for each other. */
export function inOrder({ debtor, creditor }) {
  return debtor < creditor ? [debtor, creditor] : [creditor, debtor];
}

/** Throws unless both locked accounts are there and the debtor's holds the amount. */
export function checkCovered(locked, debtor) {
  if (locked.length !== 2) throw new Error(`${locked.length} accounts were locked instead of 2.`);
  const covered = locked.some(({ id, balance }) => Number(id) === debtor && Number(balance) >= AMOUNT_CENTS);
  if (!covered) throw new Error(`Account ${debtor} does not cover a transfer of ${AMOUNT_CENTS} cents.`);
}

/** Every account, with what its ledger entries come to. */
export const BALANCES = `select accounts.id, accounts.balance, coalesce(entered.total, 0) as entered
  from accounts left join (select account, sum(amount) as total from entries group by account) as entered
  on entered.account = accounts.id`;

/** The transfers of the calls from `first` on, with how many entries each has, and what those took and gave. */
export function transfersSince(first) {
  return `select transfers.id, transfers.call, transfers.debtor, transfers.creditor, count(entries.id) as entries,
    sum(case when entries.account = transfers.debtor then entries.amount end) as taken,
    sum(case when entries.account = transfers.creditor then entries.amount end) as given
    from transfers left join entries on entries.transfer = transfers.id
    where transfers.call >= ${Number(first)} group by transfers.id`;
}

/** Throws unless every transfer is whole, every balance is what its entries come to, and no money was made or lost. */
export function checkBooks({ accounts, transfers }) {
  const torn = transfers.find((transfer) => !isWhole(transfer));
  if (torn !== undefined) throw new Error(`Transfer ${torn.id}, of call ${torn.call}, is not whole.`);
  const wrong = accounts.filter(
    ({ balance, entered }) => Number(balance) !== OPENING_CENTS + Number(entered),
  );
  if (wrong.length > 0) throw new Error(`${wrong.length} balances are not what their entries come to.`);
  const cents = accounts.reduce((sum, { balance }) => sum + Number(balance), 0);
  if (cents !== ACCOUNTS * OPENING_CENTS)
    throw new Error(`All balances come to ${cents} cents instead of ${ACCOUNTS * OPENING_CENTS}.`);
}

function isWhole({ call, debtor, creditor, entries, taken, given }) {
  const due = partiesOf(Number(call));
  const between = Number(debtor) === due.debtor && Number(creditor) === due.creditor;
  const entered = Number(taken) === -AMOUNT_CENTS && Number(given) === AMOUNT_CENTS;
  return between && entered && Number(entries) === 2;
}

function accountAt(place) {
  return 1 + ((place * STRIDE) % ACCOUNTS);
}

/** Puts neighbours in the walk on pages of their own. */
const STRIDE = 6_151;
