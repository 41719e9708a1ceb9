import { maxNameBytes } from "../../core/key.ts";
import type { Identity, KeyRecord } from "../../core/record.ts";
import { completed, freshWord, inProgress } from "../draft.ts";
import { insertNew, replaceSeen, stands } from "../expectation.ts";
import { same } from "../same.ts";
import { type StoreLaw, type StoreSubject, transactional } from "../subject.ts";

/** No two different identities ever meet. */
export const identityLaws: readonly StoreLaw[] = [
  {
    id: "identity/principals-are-apart",
    promise: "One key of two principals is two records: nobody sees, blocks or learns of another's.",
    async check(subject) {
      const key = `key-${freshWord(subject)}`;
      const [alice, bob] = [`alice-${freshWord(subject)}`, `bob-${freshWord(subject)}`];
      await apart(subject, [
        http(alice, key),
        http(bob, key),
        run(alice, "refund", key),
        run(bob, "refund", key),
      ]);
    },
  },
  {
    id: "identity/spelling-is-exact",
    promise:
      "DB-06: Case, accents, blanks, width and composition of a key or a principal all make another identity.",
    async check(subject) {
      const [word, other] = [freshWord(subject), freshWord(subject)];
      const spellings = SPELLINGS.map((spelling) => `${word}${spelling}`);
      const identities = spellings.flatMap((name) => [
        http(other, name),
        http(name, other),
        run(other, name, other),
      ]);
      await apart(subject, identities);
    },
  },
  {
    id: "identity/parts-do-not-flow-together",
    promise: "Whatever separators they hold, principal, operation and key are never taken for one another.",
    async check(subject) {
      const word = freshWord(subject);
      const pairs = SEPARATORS.flatMap((mark) => [
        http(`${word}a${mark}b`, "c"),
        http(`${word}a`, `b${mark}c`),
        run(`${word}a`, `b${mark}c`, "d"),
        run(`${word}a`, "b", `c${mark}d`),
        run(`${word}a${mark}b`, "c", "d"),
      ]);
      await apart(subject, [
        ...pairs,
        http(word, `1:${word}`),
        http(`${word}1`, word),
        http(`${word}1:`, word),
      ]);
    },
  },
  {
    id: "identity/http-and-run-are-apart",
    promise:
      "An identity of HTTP and one of `run` never meet, and in `run` each operation has keys of its own.",
    async check(subject) {
      const [principal, key] = [freshWord(subject), freshWord(subject)];
      const runs = ["http", "run", key, `http${key}`, "charge", "Charge"].map((name) =>
        run(principal, name, key),
      );
      await apart(subject, [
        http(principal, key),
        ...runs,
        http(principal, `charge${key}`),
        http(`${principal}charge`, key),
      ]);
    },
  },
  {
    id: "identity/long-names-are-whole",
    promise: "Names as long as the library lets through count to the last byte.",
    async check(subject) {
      const [word, other] = [freshWord(subject), freshWord(subject)];
      const names = [64, 255, 256, maxNameBytes].flatMap((length) => [
        word.padEnd(length, "a"),
        `${word.padEnd(length - 1, "a")}b`,
      ]);
      const identities = names.flatMap((name) => [
        http(name, other),
        http(other, name),
        run(other, name, name),
      ]);
      await apart(subject, identities);
    },
  },
  {
    id: "identity/record-id-is-its-own",
    promise:
      "The id that a foreign key of the user's may hold is one per identity, on every handle, before and after its record.",
    needs: "transactions",
    async check(subject) {
      const handles = [transactional(subject.store), transactional(await subject.another())];
      const [word, other] = [freshWord(subject), freshWord(subject)];
      const identities = [
        http(word, other),
        http(other, word),
        http(`${word}${other}`, ""),
        run(word, "a", other),
      ];
      const ids = () => handles.map(({ recordId }) => identities.map((each) => hex(recordId({ ...each }))));
      const before = ids();
      same(new Set(before.flat()).size, identities.length, "how many ids that many identities have");
      for (const identity of identities) {
        for (const { recordId } of handles) recordId(identity).fill(0);
        await insertNew(subject.store, inProgress(subject, { identity }));
      }
      same([...before, ...ids()], Array(4).fill(before[0]), "the ids on either handle, before and after");
      same(
        handles.map(({ recordId }) => identities.map((each) => hex(recordId(each)))),
        before,
        "the ids handed out twice",
      );
    },
  },
];

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Endings that something on the way would make one, by what would. */
const ALIKE = {
  caseFolding: ["a", "A", "i", "I", "\u0131", "\u0130"],
  accents: ["\u00e1", "\u00e4", "ae", "ss", "\u00df"],
  composition: ["a\u0301", "i\u0307", "\uff41"],
  trimming: ["", "a ", "a  ", " a", "a\t", "a\u00a0", "a\u200d", "\ufeff"],
  numbers: ["1", "1.0", "01", "\u0661"],
  patterns: ["'", '"', "\\", "%", "_", "*"],
  emoji: ["👩", "👩🏽", "👩‍👩‍👧"],
  control: ["\u0001", "\u007f"],
  words: ["null", "undefined", "true"],
};
const SPELLINGS: readonly string[] = Object.values(ALIKE).flat();

const SEPARATORS: readonly string[] = ["", ":", "|", "/", ",", " ", "\u001f", "\n", "\\", '"', '","', "::"];

function http(principal: string, key: string): Identity {
  return { kind: "http", principal, key };
}

function run(principal: string, operation: string, key: string): Identity {
  return { kind: "run", principal, operation, key };
}

/** Fails unless each identity has a record of its own, and a write on one leaves all others alone. */
async function apart(subject: StoreSubject, identities: readonly Identity[]): Promise<void> {
  const { store } = subject;
  const records: KeyRecord[] = [];
  for (const identity of identities) {
    const record = await insertNew(store, inProgress(subject, { identity }));
    same(record.identity, identity, "the identity of a new record");
    records.push(record);
  }
  const [first, ...others] = records;
  if (first === undefined) return;
  const { identity, owner } = first;
  const finished = await replaceSeen(store, first, completed(subject, { identity, owner }));
  for (const record of [finished, ...others])
    await stands([store], record, "the record of a similar identity");
}
