/** Records that most pages need: the signed-in user, statuses, tags, users and territories. */
import { useQuery } from "@tanstack/react-query";
import type { Me } from "canvassing-client/api";
import { answer, api } from "./client.ts";

/** For one minute, pages use statuses, tags, users and territories from the cache, because this data rarely changes. */
const STALE_AFTER_MS = 60_000;

/** The settings of the deployment. */
interface Config {
  readonly issuer: string;
  readonly basemapStyleUrl: string | null;
}

async function readConfig(): Promise<Config> {
  const response = await fetch("/config.json");
  if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
  return response.json();
}

export const useConfig = () =>
  useQuery({ queryKey: ["config"], queryFn: readConfig, staleTime: Number.POSITIVE_INFINITY });

export const useMe = () =>
  useQuery({ queryKey: ["me"], queryFn: () => answer(api.GET("/api/me")), staleTime: Number.POSITIVE_INFINITY });

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

export const nameOf = ({ firstName, lastName }: { firstName: string; lastName: string }): string =>
  `${firstName} ${lastName}`;
