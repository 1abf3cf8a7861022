/** The descriptions of the settings, for the tables of docs/settings.md. */
import * as z from "zod/mini";

/** Headings in docs/settings.md, in this order. */
export const topics = [
  "Name and address",
  "Size",
  "Users and their mail",
  "Clients and webhooks",
  "Console",
  "Retention",
  "Existing resources",
  "Backups",
  "Alarms",
  "Costs",
  "Releases",
  "Rehearsal and development",
] as const;

export interface SettingTexts {
  readonly topic: (typeof topics)[number];
  readonly description: string;
  /** The behavior if the key is not set. It is required if the schema has no default value. */
  readonly default?: string;
  /** What the setting changes for users and operators. Also says what happens if an existing deployment changes the value. */
  readonly effect: string;
  readonly cost: string;
}

export const settingTexts = z.registry<SettingTexts>();
