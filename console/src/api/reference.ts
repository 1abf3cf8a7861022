/** Records that most pages need: the signed-in user, statuses, tags, users and territories. */
import { useQuery } from "@tanstack/react-query";
import type { Me, UserSummary } from "canvassing-client/api";
import type { FeatureCollection } from "geojson";
import { answer, api, RequestFailed } from "./client.ts";

/** For one minute, pages use statuses, tags, users and territories from the cache, because this data rarely changes. */
const STALE_AFTER_MS = 60_000;

/** The settings of the deployment. */
export interface Config {
  readonly issuer: string;
  /** The URLs of the MapLibre styles for light and for dark screens. Null if there is no street map. */
  readonly basemap: { readonly light: string; readonly dark: string } | null;
  /** The streets of the local demo, which maps draw if there is no street map. */
  readonly streets: FeatureCollection | null;
  /** False if the deployment has switched the service worker off. */
  readonly offline: boolean;
}

async function readConfig(): Promise<Config> {
  const response = await fetch("/config.json");
  if (!response.ok) throw new RequestFailed(response.status, undefined);
  return response.json();
}

/** The keys in `localStorage` of what the console needs to start without a connection. They are removed when the user signs out. */
const KEPT = { config: "canvassing-config", me: "canvassing-me" } as const;

/** Returns the answer of `read`, and keeps it on this device. Without a connection, returns the answer that was kept last. */
async function kept<T>(name: string, read: () => Promise<T>): Promise<T> {
  try {
    const value = await read();
    localStorage.setItem(name, JSON.stringify(value));
    return value;
  } catch (error) {
    const text = localStorage.getItem(name);
    if (text === null || error instanceof RequestFailed) throw error;
    return JSON.parse(text);
  }
}

export function forgetUser(): void {
  for (const name of Object.values(KEPT)) localStorage.removeItem(name);
}

const once = { staleTime: "static", networkMode: "always" } as const;

export const useConfig = () =>
  useQuery({ queryKey: ["config"], queryFn: () => kept(KEPT.config, readConfig), ...once });

export const useMe = () =>
  useQuery({ queryKey: ["me"], queryFn: () => kept(KEPT.me, () => answer(api.GET("/api/me"))), ...once });

export const useStatuses = () =>
  useQuery({ queryKey: ["statuses"], queryFn: () => answer(api.GET("/api/statuses")), staleTime: STALE_AFTER_MS });

export const useTags = () =>
  useQuery({ queryKey: ["tags"], queryFn: () => answer(api.GET("/api/tags")), staleTime: STALE_AFTER_MS });

export const useUsers = () =>
  useQuery({ queryKey: ["users"], queryFn: () => answer(api.GET("/api/users")), staleTime: STALE_AFTER_MS });

export const useTerritories = () =>
  useQuery({
    queryKey: ["territories"],
    queryFn: () => answer(api.GET("/api/territories")),
    staleTime: STALE_AFTER_MS,
  });

export const isAdmin = ({ role }: Me): boolean => role !== "sales";

export const mayManage = ({ permissions }: Me): boolean => permissions.includes("canManageProspects");

/**
 * Returns the options of a list of users: all active people, and the user `chosen` even if inactive. Service accounts are left out, because
 * no work is assigned to them.
 */
export function useUserOptions(chosen?: number): readonly (readonly [id: number, name: string])[] {
  const users = useUsers().data ?? [];
  return users
    .filter(({ isActive, type, id }) => (isActive && type !== "service") || id === chosen)
    .map((user) => [user.id, nameOf(user)]);
}

/** Returns the name that pages show. A service account has no first name. */
export const nameOf = ({ firstName, lastName, type }: Pick<UserSummary, "firstName" | "lastName" | "type">): string =>
  type === "service" ? `${lastName} (service account)` : `${firstName} ${lastName}`;
