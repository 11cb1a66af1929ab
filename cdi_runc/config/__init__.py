"""From the configuration's file to settings, and to what the launcher reads (cold)."""
