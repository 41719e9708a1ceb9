import { createEngine } from "oncekey";
import { protect } from "oncekey/fetch";
import { postgresStore } from "oncekey/postgres";
import { Pool, type PoolClient } from "pg";

// A route of Next: app/api/orders/route.ts
const pool = new Pool({ connectionString: process.env["DATABASE_URL"] });
const engine = createEngine({ store: postgresStore<PoolClient>({ pool }) });
const principal = (request: Request) => request.headers.get("x-caller"); // set by your middleware, behind authentication

export const POST: (request: Request) => Promise<Response> = protect(
  engine,
  { principal, effects: "transaction" },
  async (request, { transaction }) => {
    const item = await request.text();
    return transaction(async (tx) => {
      const { rows } = await tx.query("INSERT INTO orders (item) VALUES ($1) RETURNING id", [item]);
      return { status: 201, json: { id: rows[0].id, item } };
    });
  },
);
