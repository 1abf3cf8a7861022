/** The descriptions of the settings, for the tables of docs/settings.md. */
import * as z from "zod/mini";

export interface SettingTexts {
  readonly description: string;
  /** The behavior if the key is not set. It is required if the schema has no default value. */
  readonly default?: string;
  /** What the setting changes for users and operators. Also says what happens if an existing deployment changes the value. */
  readonly effect: string;
  /** By default, the setting costs nothing. */
  readonly cost?: string;
}

export const settingTexts = z.registry<SettingTexts>();
