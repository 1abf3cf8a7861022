/** Reads the operator's settings from `settings.json`. Git ignores this file, so a new release never changes it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod/mini";
import { messageOf } from "../cli/command/error.ts";
import { CDK_KEY, type DeployConfig, readConfig } from "./config.ts";
import type { Place } from "./place.ts";

const FILE = "settings.json";
const Settings = z.record(z.string(), z.unknown());

/** Reads the settings. A key of the CDK context replaces the same key of the file. Each line of an error names the file or the context. */
export function readDeployment(
  directory: string,
  context: Readonly<Record<string, unknown>>,
  place: Place = {},
): DeployConfig {
  const inFile = settingsIn(join(directory, FILE));
  try {
    return readConfig({ ...inFile, ...context }, place);
  } catch (error) {
    const message = messageOf(error).replaceAll(/^context key (.*?):/gm, (text, key: string) =>
      Object.hasOwn(inFile, key) && !Object.hasOwn(context, key) ? `${FILE}: ${key}:` : text,
    );
    throw new Error(message, { cause: error });
  }
}

function settingsIn(file: string): Readonly<Record<string, unknown>> {
  if (!existsSync(file)) return {};
  const read = z.safeParse(Settings, parsed(readFileSync(file, "utf8")));
  if (!read.success) throw new Error(`${FILE}: must be an object such as {"preset": "small"}`);
  // Only the CDK context may contain the CDK's own keys.
  const foreign = Object.keys(read.data).find((key) => CDK_KEY.test(key));
  if (foreign !== undefined) throw new Error(`${FILE}: ${foreign}: unknown; docs/settings.md lists all settings`);
  return read.data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${FILE}: is no valid JSON: ${messageOf(error)}`);
  }
}
