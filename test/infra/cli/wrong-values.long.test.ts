/**
 * Tests the messages about wrong values of options. The first line must contain the option, the given value and what is accepted.
 */
import { expect, test } from "vitest";
import { present } from "../../harness/shapes.ts";
import { commandFiles, runFile } from "./command-process.ts";

const files = new Map(commandFiles());
const create = ["create", "--name", "Acme", "--owner", "owner@acme.test"];

test.concurrent.each([
  ["load", ["--companies", "0"], '--companies: must be a whole number from 1 to 2000, and not "0"'],
  ["load", ["--reps", "abc"], '--reps: must be a whole number from 1 to 100, and not "abc"'],
  ["load", ["--seconds", "1e2"], '--seconds: must be a number from 1 to 600, and not "1e2"'],
  ["load", ["--noisy", "0"], '--noisy: must be a number from 1 to 1000, and not "0"'],
  ["load", ["--max-ratio=-1"], '--max-ratio: must be a number from 0 to 1000, and not "-1"'],
  [
    "load",
    ["--base", "api.example.com"],
    '--base: must be a URL that begins with http:// or https://, and not "api.example.com"',
  ],
  ["load", ["--noisy", "2", "--times", "2"], "--noisy and --times cannot be combined: run the command once with each"],
  ["load", ["--max-ratio", "3"], "--max-ratio: needs --noisy"],
  ["load", ["--tokens", "tokens.json"], "--tokens: needs --base"],
  [
    "company",
    [...create, "--sub", " s"],
    '--sub: must be a text of 1 to 255 characters without blanks at its ends, and not " s"',
  ],
  [
    "company",
    ["create", "--name", "", "--owner", "a@b.test"],
    '--name: must be a text of 1 to 255 characters without blanks at its ends, and not ""',
  ],
  ["company", ["create", "--name", "A", "--owner", "a@b"], '--owner: must be an e-mail address, and not "a@b"'],
  ["company", ["suspend", "--company", " 1"], '--company: must be the id of a company, and not " 1"'],
  [
    "company",
    ["export", "--company", "1", "--read-units", "0"],
    '--read-units: must be a whole number from 1 to 999999, and not "0"',
  ],
  ["company", ["delete", "--company", "1", "--also", "a b"], '--also: must be the name of a table, and not "a b"'],
  ["restore", ["verify", "--table", ""], '--table: must be the name of a table, and not ""'],
  [
    "restore",
    ["table", "--as", "New", "--to", "yesterday"],
    '--to: must be a time such as 2026-11-22T10:00:00Z, and not "yesterday"',
  ],
  ["index", ["verify", "--company", "0"], '--company: must be the id of a company, and not "0"'],
  ["smoke", ["--changes", "x"], '--changes: must be a whole number from 0 to 9999, and not "x"'],
  ["smoke", ["--receiver-port", "99999"], '--receiver-port: must be a whole number from 0 to 65535, and not "99999"'],
  [
    "smoke",
    ["--base", "localhost:3000"],
    '--base: must be a URL that begins with http:// or https://, and not "localhost:3000"',
  ],
  [
    "canary",
    ["create", "--sub", ""],
    '--sub: must be a text of 1 to 255 characters without blanks at its ends, and not ""',
  ],
  ["canary", ["create", "--sub", "s"], "SMOKE_TOKEN_URL: is required with --sub"],
  ["load", ["--beside", "x"], '--beside: must be hanging or fan-out or bulk, and not "x"'],
  [
    "csv",
    ["import", "a.csv", "--base", "localhost:3000"],
    '--base: must be a URL that begins with http:// or https://, and not "localhost:3000"',
  ],
  [
    "csv",
    ["import", "a.csv", "--token", "t", "--match-by", "x"],
    '--match-by: must be id, sourceId or emailAddress, and not "x"',
  ],
  [
    "csv",
    ["import", "a.csv", "--token", ""],
    "set the variable TOKEN or --token to an access token, or name a user of the local service by --as",
  ],
  ["csv", ["import", "a.csv", "--as", " "], '--as: must be an e-mail address, and not " "'],
  ["dead-letters", ["redrive"], "QUEUE: is required"],
  ["dead-letters", ["redrive", "delivery"], "delivery: no queue has this name"],
  [
    "load",
    ["--base", "http://127.0.0.1:9", "--tokens", "package.json"],
    '--tokens: must be the name of a file with a list of tokens in JSON, and not "package.json"',
  ],
  [
    "load",
    ["--base", "http://127.0.0.1:9", "--tokens", ""],
    '--tokens: must be the name of a file with a list of tokens in JSON, and not ""',
  ],
  ["load", ["--base", "http://127.0.0.1:9"], "--base needs --tokens FILE or the variable LOAD_TOKENS"],
  ["csv", ["improt", "a.csv", "--token", "secret"], "improt: unknown command"],
  ["token", [], "EMAIL: is required"],
  ["token", ["a@acme.test", "b@acme.test"], "a@acme.test b@acme.test: give one e-mail address"],
  [
    "company",
    ["suspend", "--company", "1", "--stage", ""],
    '--stage: must be 2 to 20 lower-case letters, digits and hyphens, such as test, and not ""',
  ],
  ["company", ["suspend", "--company", "1", "--stack", ""], '--stack: must be the name of a stack, and not ""'],
  ["company", ["suspend"], "--company: is required"],
  ["company", ["create", "--name", "A"], "--owner: is required"],
  ["company", ["crate", "--name", "A"], "crate: unknown command"],
  ["index", ["verfy", "--company", "1"], "verfy: unknown command"],
  ["restore", ["tabel", "--to", "X"], "tabel: unknown command"],
  ["restore", ["delete", "--table", "Restored", "--as", "Other"], "--as: this command has no such option"],
  ["senders", ["halt"], "halt: unknown command"],
  ["canary", ["make"], "make: unknown command"],
])("npm run %s with %j names the reason in one line, with exit code 2", async (name, args, reason) => {
  const { status, stdout, stderr } = await runFile(present(files.get(name)), args);
  expect([status, stdout, stderr.split("\n")[0]?.replace(/: see npm run .* -- --help$/, "")]).toEqual([2, "", reason]);
});
