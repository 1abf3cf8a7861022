/** Returns IAM actions: those of the documented `aws` commands, and those rights of a person that tests can observe in requests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../infra/build/bundle.ts";
import { type Person, people } from "../../infra/security/people.ts";
import { awsCall } from "../harness/aws-cli.ts";

export const wordsOf = (command: string): string[] =>
  [...command.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);

/** Returns the commands for an AWS account in a document. Commands of the AWS CLI are also in sentences, not only in code blocks. */
export function commandsOf(document: string): string[] {
  const text = readFileSync(join(root, "docs", document), "utf8");
  const blocks = [...text.matchAll(/^```sh aws\n(.*?)^```$/gms)].flatMap(([, block = ""]) => block.trim().split("\n"));
  return [...blocks, ...[...text.matchAll(/`(aws [^`]+ --[^`]+)`/g)].map(([, command = ""]) => command)];
}

/** Returns the actions of the commands of the AWS CLI in a document, for the services in the list. */
export const actionsOfAws = (document: string, services: readonly string[]): string[] =>
  commandsOf(document)
    .filter((line) => line.startsWith("aws "))
    .map((line) => awsCall(wordsOf(line)))
    .filter(({ service: name }) => services.includes(name))
    .map(({ action }) => action);

export const observable = (person: Person): string[] =>
  people[person].rights.filter(({ unseen }) => unseen === undefined).flatMap(({ actions }) => actions);

export const sorted = (actions: readonly string[]): string[] => [...new Set(actions)].toSorted();
