/** Reads service accounts and their keys. */
import { useQuery } from "@tanstack/react-query";
import type { ApiKey } from "canvassing-client/api";
import { answer, api } from "../api/client.ts";

export const useAccounts = () =>
  useQuery({ queryKey: ["service-accounts"], queryFn: () => answer(api.GET("/api/service-accounts")) });

export const useAccount = (id: number) =>
  useQuery({
    queryKey: ["service-accounts", id],
    queryFn: () => answer(api.GET("/api/service-accounts/{id}", { params: { path: { id } } })),
  });

export const useKeys = (id: number) =>
  useQuery({
    queryKey: ["service-accounts", id, "keys"],
    queryFn: () => answer(api.GET("/api/service-accounts/{id}/keys", { params: { path: { id } } })),
  });

/** What to load again after a change of an account or key. The list of users contains the accounts too. */
export const stale = ["service-accounts", "users"];

export const DAY_MS = 86_400_000;

/** Returns the days until a key ends, rounded up. The number is not above zero if the key has ended. */
export const daysLeft = ({ expiresAt }: ApiKey): number => Math.ceil((Date.parse(expiresAt) - Date.now()) / DAY_MS);
export const isLive = (key: ApiKey): boolean => daysLeft(key) > 0;
